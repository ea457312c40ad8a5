"""Finds external data and tools: CMSIS-NN, CMSIS-Packs and their devices."""
