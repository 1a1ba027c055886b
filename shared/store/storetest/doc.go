// Package storetest says what a store.Store does, as tests that every
// implementation passes: Run. It also holds Faulty, a store that fails as a
// loaded one does, for the tests of those who use a store.
package storetest
