"""The recording of one call: arrays, numbers and draws that report to a recorder."""
