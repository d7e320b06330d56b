// Package signals ends the program at a signal as ssh would end: with its socket on the host
// removed and, if nothing had begun yet, by the signal itself.
package signals
