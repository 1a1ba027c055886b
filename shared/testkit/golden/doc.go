// Package golden checks the dialects against golden files and grammars. It is for tests:
// the cases of testdata beside each dialect, the grammars of streams, and the invariants
// of fuzz tests.
//
// A case is one archive in the txtar format, testdata/<client>-<provider>/<case> of the
// provider's dialect, or testdata/operations/<translator>/<case>. `go test -update`
// rewrites the golden files in it.
package golden
