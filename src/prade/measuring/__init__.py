"""The one door: only this room reads private rows and draws noise, and only noisy counts leave it."""
