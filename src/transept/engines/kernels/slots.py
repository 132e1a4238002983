"""The memory of a search: tensors in which each sentence has a slot of its own."""

import dataclasses
from dataclasses import dataclass
from typing import Self, get_type_hints

from transept.shapes import Tensor


@dataclass(frozen=True, slots=True)
class Slotted:
    """Tensors whose shapes say by an R which axis the slots are; one without R is common to all."""

    def first(self, n_slots: int) -> Self:
        """The first slots alone, in the same memory."""
        parts = {
            name: getattr(self, name).narrow(axis, 0, n_slots)
            for name, axis in _axes(type(self)).items()
        }
        return dataclasses.replace(self, **parts)

    def by_slot(self) -> list[Tensor]:
        """All that belongs to sentences, with the slots as first axis, in the same memory."""
        return [getattr(self, name).movedim(axis, 0) for name, axis in _axes(type(self)).items()]


def _axes(kind: type[Slotted]) -> dict[str, int]:
    """Which axis the slots are, of each field that has them."""
    shapes = {name: hint.dim_str.split() for name, hint in get_type_hints(kind).items()}
    return {name: shape.index("R") for name, shape in shapes.items() if "R" in shape}
