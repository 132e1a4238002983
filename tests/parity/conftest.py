"""Examples are not timed."""

from tests.hypotheses import use_any_machine_profile

use_any_machine_profile()
