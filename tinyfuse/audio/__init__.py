"""Front ends for audio: models of TFLM's signal library that make a network's features of 16-bit samples."""
