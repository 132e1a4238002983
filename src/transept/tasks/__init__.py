"""What the network is trained to do besides translating people's texts.

`toy` (copying and reversing) and `parsing` (section 6.3).
"""
