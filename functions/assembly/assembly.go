// Package assembly lists the families of the gateway: Administration for the laptop and the
// document of the administration API, DataPlane for these and the container.
package assembly

import (
	"slices"
	"time"

	"gateway/functions/analytics"
	"gateway/functions/apikeys"
	"gateway/functions/audio"
	"gateway/functions/auditlogs"
	"gateway/functions/auth/browsersession"
	"gateway/functions/batches"
	"gateway/functions/chat"
	"gateway/functions/collections"
	"gateway/functions/configs"
	"gateway/functions/deployments"
	"gateway/functions/docs"
	"gateway/functions/embeddings"
	"gateway/functions/feedback"
	"gateway/functions/files"
	"gateway/functions/finetuning"
	"gateway/functions/guardrails"
	"gateway/functions/images"
	"gateway/functions/integrations"
	"gateway/functions/logs"
	"gateway/functions/logs/ingest"
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
	"gateway/functions/rerank"
	"gateway/functions/responses"
	"gateway/functions/secretreferences"
	"gateway/functions/users"
	"gateway/functions/webhooks"
	"gateway/functions/workspaces"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/logexport"
	"gateway/shared/audit"
	"gateway/shared/relay"
	"gateway/shared/resource"
	ratings "gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// Administration are the families of the administration API. archive is where
// logs and analytics read.
func Administration(c *app.Core, archive *segment.Archive) []admin.Family {
	reader := report.New(archive, c.Bucket)
	var dependents []resource.Dependent
	for _, p := range parts {
		dependents = append(dependents, p.dependents...)
	}
	families := []admin.Family{configs.New(configs.Deps{CheckURL: c.Egress.CheckURL}), apikeys.New(c.Ledger), workspaces.New(workspaces.Deps{Ledger: c.Ledger, Dependents: dependents}), organisation.New(), users.New(users.Deps{Mailer: c.Mailer, PublicURL: c.PublicURL})}
	families = append(families,
		integrations.New(integrations.Deps{Ledger: c.Ledger, CheckURL: c.Egress.CheckURL}),
		providers.New(providers.NewDeps(c)))
	families = append(families, prompts.New(), partials.New(), collections.New(), guardrails.New(guardrails.Deps{CheckURL: c.Egress.CheckURL}), policies.New(c.Ledger), modelpricing.New(c.Book()))
	families = append(families, webhooks.New(webhooks.Deps{CheckURL: c.Egress.CheckURL, Store: c.Store, Now: c.Now}))
	families = append(families, secretreferences.New(secretreferences.Deps{CheckURL: c.Egress.CheckURL, Transport: c.Transport, Now: c.Now}))
	rated := ratings.New(c.Store, c.Now, c.Retention.Records, c.RetentionDays)
	families = append(families, deployments.New(deployments.Deps{CheckURL: c.Egress.CheckURL, Transport: c.Transport}), feedback.New(rated), browsersession.New(browsersession.NewDeps(c)))
	families = append(families, analytics.New(reader, rated), logs.New(logs.Deps{Reader: reader, Sealer: c.Sealer, Rated: rated, Exports: logexport.NewRuns(c), Bucket: c.Bucket,
		Tail: logs.TailOptions{Interval: 250 * time.Millisecond, Ends: c.Stopping}, Store: c.Store, Ingest: &ingest.Maker{Sink: c.Events(), Sealer: c.Sealer, Now: c.Now, Prices: c.Book()}, Prices: c.Book()}), auditlogs.New(audit.NewReader(c.Store, c.Now)))
	var tools docs.Tools
	for _, p := range parts {
		if p.families != nil {
			families = p.families(c, families)
		}
		if p.tools != nil {
			tools = p.tools(c)
		}
	}
	return append(families, docs.New(tools, DataPlane(), families...)) // the document describes all families before it
}

// DataPlane are the routes of all data-plane families.
func DataPlane() []relay.Route {
	all := slices.Concat(chat.Routes(), messages.Routes(), responses.Routes(), embeddings.Routes(), models.Routes(), moderations.Routes(), images.Routes(), audio.Routes(),
		files.Routes(), batches.Routes(), finetuning.Routes(), rerank.Routes(), promptruns.Routes(), passthrough.Routes())
	for _, p := range parts {
		if p.routes != nil {
			all = p.routes(all)
		}
	}
	return all
}
