// Command lambda serves the family embeddings as a function.
package main

import (
	"gateway/functions/embeddings"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(embeddings.Routes()) }
