"""What is looked for outside: CMSIS-NN, CMSIS-Packs and their devices."""
