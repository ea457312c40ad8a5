"""python -m tinyfuse"""

from tinyfuse.cli import main

main()
