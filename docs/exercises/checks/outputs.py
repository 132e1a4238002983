"""A model with a few outputs of given probabilities, as a step for the package's searches."""

import torch


class Outputs:
    """An autoregressive model over letters; `.` is the end symbol."""

    def __init__(self, probabilities):
        self.probabilities = probabilities
        self.letters = sorted(set("".join(probabilities)))
        self.eos_id = self.letters.index(".")
        self.rows = [""]

    def next_log_p(self, prefix):
        """Log p of each letter after a prefix. After an impossible prefix all are equal."""
        total = self._mass(prefix)
        if total == 0:
            return torch.full((len(self.letters),), 1 / len(self.letters)).log()
        shares = [self._mass(prefix + letter) / total for letter in self.letters]
        return torch.tensor(shares).log()

    def _mass(self, prefix):
        return sum(p for output, p in self.probabilities.items() if output.startswith(prefix))

    def text(self, ids):
        """The output as text."""
        return "".join(self.letters[token] for token in ids)

    # The two methods of `transept.decoding.step.Step`.

    def __call__(self, tokens):
        """Append a token to each row; return log p of the next."""
        if tokens is not None:
            added = map(self.letters.__getitem__, tokens.tolist())
            self.rows = [row + letter for row, letter in zip(self.rows, added, strict=True)]
        return torch.stack([self.next_log_p(row) for row in self.rows])

    def select(self, rows):
        """Continue with these rows."""
        self.rows = [self.rows[row] for row in rows.tolist()]
