"""
`python -m kgateway`.
"""

import sys

from kgateway.cli.main import main

sys.exit(main())
