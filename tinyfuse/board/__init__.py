"""Communication with a real board: the other end of the serial line that NAME_board.c serves (templates/board.c.j2).

frames.py   bytes of requests and answers
port.py     the serial line, by pyserial
device.py   requests to a board
text.py     text of a validation
"""
