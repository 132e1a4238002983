"""All faults, in the order in which they happen."""

from tests.faults import corruptions, disks, interruptions, kills
from tests.faults.fault import Fault

FAULTS: list[Fault] = [
    *kills.FAULTS,
    *corruptions.FAULTS,
    *disks.FAULTS,
    *interruptions.FAULTS,
]
