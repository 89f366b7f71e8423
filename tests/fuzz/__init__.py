"""The fuzzer of everything that reads files and texts; `fuzz.run` is what `make fuzz` starts."""
