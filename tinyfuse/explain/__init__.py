"""Why a plan is as it is: `tinyfuse explain`.

`fusions.py` weighs every group against its operators alone, and every border against the group it
would be without it; `advice.py` says what the model's author could change; `text.py` shows both.
"""
