"""`transept data prepare` with small chunks of text, each committed: to be killed early on.

torchrun ... -m tests.integration.impatient data prepare ...
"""

from transept.cli.app import main
from transept.data.preparation import formats
from transept.data.preparation.prepare import prepare

formats.CHUNK_ROWS = 100

if __name__ == "__main__":
    assert prepare.__kwdefaults__ is not None
    prepare.__kwdefaults__["commit_seconds"] = 0.0
    main()
