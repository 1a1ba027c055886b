// Package golden checks the dialects against what is written down about them. It is for
// tests: the cases of testdata beside each dialect, the grammars of streams, and what fuzz
// tests demand of any input.
//
// A case is one archive in the txtar format, testdata/<client>-<provider>/<case>
// of the provider's dialect, or testdata/operations/<translator>/<case>. `go test
// -update` writes the golden files in it anew.
package golden
