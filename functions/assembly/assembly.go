// Package assembly lists the families of the gateway, for the processes that
// serve all of them: the container, the laptop, and the document of the
// administration API.
package assembly

import (
	"net/http"
	"slices"
	"time"

	"gateway/functions/agentservers"
	"gateway/functions/analytics"
	"gateway/functions/apikeys"
	"gateway/functions/audio"
	"gateway/functions/auditlogs"
	"gateway/functions/auth"
	"gateway/functions/batches"
	"gateway/functions/chat"
	"gateway/functions/collections"
	"gateway/functions/configs"
	"gateway/functions/deployments"
	"gateway/functions/docs"
	"gateway/functions/docs/toolbox"
	"gateway/functions/dryrun"
	"gateway/functions/embeddings"
	"gateway/functions/feedback"
	"gateway/functions/files"
	"gateway/functions/finetuning"
	"gateway/functions/guardrails"
	"gateway/functions/images"
	"gateway/functions/integrations"
	"gateway/functions/logs"
	"gateway/functions/logs/ingest"
	"gateway/functions/mcp"
	"gateway/functions/mcpservers"
	"gateway/functions/messages"
	"gateway/functions/modelpricing"
	"gateway/functions/models"
	"gateway/functions/moderations"
	"gateway/functions/organisation"
	"gateway/functions/partials"
	"gateway/functions/passthrough"
	"gateway/functions/policies"
	"gateway/functions/promptruns"
	"gateway/functions/prompts"
	"gateway/functions/providers"
	"gateway/functions/realtime"
	"gateway/functions/rerank"
	"gateway/functions/responses"
	"gateway/functions/scim"
	"gateway/functions/secretreferences"
	"gateway/functions/users"
	"gateway/functions/webhooks"
	"gateway/functions/workspaces"
	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/logexport"
	"gateway/shared/audit"
	"gateway/shared/relay"
	ratings "gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// Administration are the families of the administration API. archive is where
// logs and analytics read.
func Administration(c *app.Core, archive *segment.Archive) []admin.Family {
	reader := report.New(archive, c.Bucket)
	families := []admin.Family{configs.New(configs.Deps{CheckURL: c.Egress.CheckURL}), apikeys.New(c.Ledger), workspaces.New(workspaces.Deps{Ledger: c.Ledger}), organisation.New(), users.New(users.Deps{Mailer: c.Mailer, PublicURL: c.PublicURL})}
	families = append(families,
		integrations.New(integrations.Deps{Ledger: c.Ledger, CheckURL: c.Egress.CheckURL}),
		providers.New(providers.NewDeps(c)))
	families = append(families, prompts.New(), partials.New(), collections.New(), guardrails.New(guardrails.Deps{CheckURL: c.Egress.CheckURL}), policies.New(c.Ledger), modelpricing.New(c.Book()))
	families = append(families, webhooks.New(webhooks.Deps{CheckURL: c.Egress.CheckURL, Store: c.Store, Now: c.Now}))
	families = append(families, secretreferences.New(secretreferences.Deps{CheckURL: c.Egress.CheckURL, Transport: c.Transport, Now: c.Now}))
	secrets := console.Secrets(c)
	rated := ratings.New(c.Store, c.Now, c.Retention.Records, c.RetentionDays)
	families = append(families,
		mcpservers.New(mcpservers.NewDeps(c, secrets)),
		agentservers.New(agentservers.Deps{CheckURL: c.Egress.CheckURL, PublicURL: c.PublicURL, Opener: &a2a.Opener{Sealer: c.Sealer, Transport: c.Transport, Secrets: secrets}}),
		deployments.New(deployments.Deps{CheckURL: c.Egress.CheckURL, Transport: c.Transport}), scim.New(scim.NewDeps(c)), feedback.New(rated), auth.New(auth.NewDeps(c)))
	families = append(families, analytics.New(reader, rated), logs.New(logs.Deps{Reader: reader, Sealer: c.Sealer, Rated: rated, Exports: logexport.NewRuns(c), Bucket: c.Bucket,
		Tail: logs.TailOptions{Interval: 250 * time.Millisecond, Ends: c.Stopping}, Store: c.Store, Ingest: &ingest.Maker{Sink: c.Events(), Sealer: c.Sealer, Now: c.Now, Prices: c.Book()}, Prices: c.Book()}), auditlogs.New(audit.NewReader(c.Store, c.Now)))
	return append(families, docs.New(toolbox.LocalAPI{Handler: func() http.Handler { return c.Administration }}, DataPlane(), families...)) // the document describes all families before it
}

// DataPlane are the routes of all data-plane families.
func DataPlane() []relay.Route {
	all := slices.Concat(chat.Routes(), messages.Routes(), responses.Routes(), embeddings.Routes(), models.Routes(), moderations.Routes(), images.Routes(), audio.Routes(),
		files.Routes(), batches.Routes(), finetuning.Routes(), rerank.Routes(), promptruns.Routes(), realtime.Routes(), mcp.Routes(), passthrough.Routes())
	return append(all, dryrun.Routes(all)...)
}
