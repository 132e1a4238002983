"""Break transept in every way we know, and count what survives.

    python -m tests.faults [--seed N] [--short] [--only NAME …] [--case N] [--json FILE]

The same seed breaks the same things in the same way: what failed is replayed by the command that is
printed beside it.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Run the faults and print the score; 1 if anything broke."""
    options = _options()
    # One thread each, so that lanes do not wait for one another, and before anything makes a pool.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    from tests.faults.catalogue import FAULTS
    from tests.faults.fault import Form
    from tests.faults.laboratory import Laboratory
    from tests.faults.score import as_json, try_out
    from tests.faults.view import View

    chosen = [fault for fault in FAULTS if fault.name in (options.only or [fault.name])]
    form: Form = "short" if options.short else "long"
    view = View(options.seed, form)
    with tempfile.TemporaryDirectory(prefix="transept-faults-") as place:
        lab = Laboratory.open(Path(os.path.realpath(place)), options.jobs)
        tallies = []
        for fault in chosen:
            tallies.append(try_out(lab, fault, options.seed, form, options.case))
            view.add(tallies[-1])
    view.close(tallies)
    if options.json:
        options.json.write_text(json.dumps(as_json(tallies, options.seed), indent=2) + "\n")
    return 0 if all(tally.good for tally in tallies) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description="Break transept, and count what survives."
    )
    parser.add_argument("--seed", type=int, default=1, help="what chance follows from")
    parser.add_argument("--short", action="store_true", help="a few cases of each, as CI does")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these faults")
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="write the score there, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
