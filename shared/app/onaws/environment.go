package onaws

import (
	"fmt"
	"os"
	"strings"

	"gateway/shared/egress"
)

// Names of the variables that describe an installation.
const (
	EnvName          = "GATEWAY_NAME"                  // of the installation; "gateway"
	EnvTablePrefix   = "GATEWAY_TABLE_PREFIX"          // before the names of the tables; "gateway-"
	EnvBucket        = "GATEWAY_BUCKET"                // segments and large bodies
	EnvAuditQueue    = "GATEWAY_AUDIT_QUEUE_URL"       // audit records
	EnvUsageQueue    = "GATEWAY_USAGE_QUEUE_URL"       // usage events
	EnvRunQueue      = "GATEWAY_BATCH_QUEUE_URL"       // steps of batches that the gateway runs; none: it runs none
	EnvExportQueue   = "GATEWAY_EXPORT_QUEUE_URL"      // steps of exports of logs; none: none can be started
	EnvKey           = "GATEWAY_KMS_KEY_ID"            // wraps the data keys
	EnvFormerKeys    = "GATEWAY_KMS_FORMER_KEY_IDS"    // unwrap only; comma list
	EnvOriginSecrets = "GATEWAY_ORIGIN_SECRETS"        // of the edge at deployment, at most two; comma list, or "off"
	EnvEgress        = "GATEWAY_EGRESS_ALLOW"          // reachable besides public addresses; none
	EnvTrustedHosts  = "TRUSTED_CUSTOM_HOSTS"          // custom hosts that may be called by plain HTTP
	EnvBlockInline   = "BLOCK_INLINE_CONFIG"           // "true": no inline configuration
	EnvMailFrom      = "GATEWAY_MAIL_FROM"             // sender of mails; none: no mail is sent
	EnvMailIdentity  = "GATEWAY_MAIL_IDENTITY"         // ARN of the sender's identity in SES
	EnvPublicURL     = "GATEWAY_PUBLIC_URL"            // base URL that links in mails begin with
	EnvPricesURL     = "GATEWAY_PRICES_URL"            // where a sheet of prices is published; none
	EnvBodyDays      = "GATEWAY_BODY_RETENTION_DAYS"   // retention of bodies in days; default 90, 0: unlimited
	EnvRecordDays    = "GATEWAY_RECORD_RETENTION_DAYS" // retention of records in days; default 365, 0: unlimited
)

// defaultPrefix is that of the tables.
const defaultPrefix = "gateway-"

const defaultName = "gateway"

// need gives a variable's value; its absence is an error.
func need(name string) (string, error) {
	v := os.Getenv(name)
	if v == "" {
		return "", fmt.Errorf("onaws: %s must be set", name)
	}
	return v, nil
}

// list splits a comma list; empty parts do not count.
func list(name string) []string {
	var out []string
	for _, v := range strings.Split(os.Getenv(name), ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// policy is what may be dialled. Without EnvEgress that is public addresses.
func policy() (egress.Policy, error) {
	p, err := egress.ParseAllow(os.Getenv(EnvEgress))
	if err != nil {
		return p, fmt.Errorf("%s: %w", EnvEgress, err)
	}
	if p.RootCAs, err = egress.Roots(os.Getenv(egress.EnvRoots)); err != nil {
		return p, err
	}
	trusted, set := os.LookupEnv(EnvTrustedHosts)
	if !set {
		p.TrustedHosts = egress.DefaultTrusted(true)
		return p, nil
	}
	if p.TrustedHosts, err = egress.ParseTrusted(trusted); err != nil {
		return p, fmt.Errorf("%s: %w", EnvTrustedHosts, err)
	}
	return p, nil
}
