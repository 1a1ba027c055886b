// Command lambda serves the family docs as a function.
package main

import (
	"gateway/functions/docs"
	"gateway/functions/docs/document"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{docs.Serve(document.JSON)} })
}
