"""Operator families with state or time: LSTM, SVDF, signal operators, rings and variables."""
