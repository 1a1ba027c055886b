// Package document holds the OpenAPI document as it was built last, so that the
// function that serves it need not link what it describes. A test of the assembly
// keeps it current.
package document

import _ "embed"

// JSON is the document.
//
//go:embed openapi.json
var JSON []byte
