"""A module on a real board: the other end of the serial line that NAME_board.c answers (templates/board.c.j2).

frames.py   the bytes of requests and answers
port.py     the line, by pyserial
device.py   what a board can be asked
text.py     what a terminal is shown
"""
