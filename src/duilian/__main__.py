"""python -m duilian: the command line without its script."""

from duilian.cli import main

main()
