// Package sealtest is the contract that a seal.Sealer passes over every
// seal.Wrapper.
package sealtest
