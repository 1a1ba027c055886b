// Package document contains the generated OpenAPI document, so that the function that serves it
// need not link the described packages. A test of the assembly verifies that it is current.
package document

import _ "embed"

// JSON is the document.
//
//go:embed openapi.json
var JSON []byte
