// Package emulator runs dynoxide, an emulator of DynamoDB, as a process of its
// own on loopback. Tests and the laptop's stand-ins of AWS use it; nothing that
// is deployed does.
package emulator
