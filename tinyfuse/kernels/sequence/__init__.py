"""Kernels of operators with state: LSTM, SVDF, signal operators, rings and variables."""
