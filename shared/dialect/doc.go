// Package dialect is the room of the wire format. Each folder is one dialect and
// implements the roles of chat that it has. Dialects do not know each other: what goes
// from one to another goes through chat. The golden cases of a pair are in the testdata
// of its provider's dialect; package golden runs them. The README reports how a dialect
// is added, and which tests then check it.
package dialect
