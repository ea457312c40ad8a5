"""Makes front ends for audio: models of TFLM's signal library that compute features from 16-bit samples."""
