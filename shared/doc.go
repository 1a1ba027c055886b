// Package shared is the folder of the rooms below functions, local and infra. rooms.txt
// lists them in order, and the tests beside it enforce that order. It holds no code.
package shared
