"""``python -m checks.golden``."""

import sys

from checks.golden.run import main

if __name__ == "__main__":
    sys.exit(main())
