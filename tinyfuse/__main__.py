"""python -m tinyfuse"""

from tinyfuse.cli.main import main

main(prog_name="tinyfuse")
