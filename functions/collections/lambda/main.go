// Command lambda serves the family collections as a function.
package main

import (
	"gateway/functions/collections"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{collections.New()} })
}
