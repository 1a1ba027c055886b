// Command lambda serves the family embeddings as a function.
package main

import (
	"gateway/functions/embeddings"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(embeddings.Routes(), plane.Translators()) }
