"""``python -m duplex`` is the ``duplex`` command."""

from duplex.cli import main

main()
