"""Tasks other than translation: `toy` (copying and reversing) and `parsing` (section 6.3)."""
