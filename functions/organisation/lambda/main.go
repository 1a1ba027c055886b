// Command lambda serves the family organisation as a function.
package main

import (
	"gateway/functions/organisation"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{organisation.New()} })
}
