"""python -m tinyfuse"""

from tinyfuse.cli import main

main(prog_name="tinyfuse")
