// Command lambda serves the family docs as a function. It holds the descriptions
// of all families, and serves none of the others.
package main

import (
	"gateway/functions/assembly"
	"gateway/functions/docs"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
	"gateway/shared/usage/segment"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		all := assembly.Administration(c, segment.New(c.Store, c.Bucket, segment.Options{}))
		for i := range all {
			if all[i].Name == docs.Name {
				return all[i : i+1]
			}
		}
		return nil
	})
}
