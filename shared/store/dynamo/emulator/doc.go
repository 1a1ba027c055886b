// Package emulator runs dynoxide, an emulator of DynamoDB, as a separate process on
// loopback. Tests and the local emulators of AWS use it; nothing deployed does.
package emulator
