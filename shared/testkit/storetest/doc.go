// Package storetest defines what a store.Store must do, as tests that every implementation
// passes: Run. It also has Faulty, a store that fails as a busy one does, for tests of code
// that uses a store.
package storetest
