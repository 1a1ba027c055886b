// Package dialect is the room of the wire shapes. Each folder is one dialect and
// implements chat.Dialect; they do not know each other, what goes from one to
// another goes through chat. The golden files of all pairs are in testdata.
package dialect
