"""The one door: only this room reads private rows and draws noise; only noisy counts come out."""
