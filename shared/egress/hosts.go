package egress

import "strings"

// metadataNames are names of credential services. As with their addresses, no policy opens
// them. A name includes everything below it.
var metadataNames = []string{
	"metadata.google.internal", "metadata.gce.internal", "metadata.goog",
	"metadata.azure.com", "metadata.azure.internal", "instance-data.ec2.internal",
	"metadata.internal", "metadata.do.internal", "metadata.packet.net",
	"metadata.platformequinix.com", "metadata.tencentyun.com", "metadata.cloud.ibm.com",
	"metadata.oraclecloud.com", "metadata", "instance-data",
}

// internalNames are names inside a cloud account or a cluster, and services
// that turn a public name into any address. Only an exact host:port of
// AllowHostPorts opens them.
var internalNames = []string{
	"ec2.internal", "compute.internal", "internal.cloudapp.net",
	"kubernetes.default", "kubernetes.default.svc", "cluster.local", "consul",
	"nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me",
	"traefik.me", "localhost.run",
}

// internalExact are blocked only as a complete name.
var internalExact = []string{"kubernetes"}

// closedTLDs are top-level names without a public meaning; a trusted host may
// end in them.
var closedTLDs = []string{
	"local", "localdomain", "internal", "intranet", "lan", "home", "corp",
	"test", "invalid", "onion", "localhost",
}

func anyUnder(list []string, host string) bool {
	for _, name := range list {
		if host == name || under(host, name) {
			return true
		}
	}
	return false
}

func internalName(host string) bool {
	for _, name := range internalExact {
		if host == name {
			return true
		}
	}
	return anyUnder(internalNames, host)
}

func closedTLD(host string) bool {
	return anyUnder(closedTLDs, host[strings.LastIndexByte(host, '.')+1:])
}

// closedPort reports whether a port belongs to services that are not HTTP
// model hosts: mail, remote login, file shares, databases, brokers, cluster
// control. Only an exact host:port of AllowHostPorts opens one.
func closedPort(port uint16) bool {
	switch port {
	case 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79,
		87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137,
		138, 139, 143, 161, 162, 179, 389, 427, 445, 465, 500, 512, 513, 514, 515,
		526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 623, 631, 636, 873,
		989, 990, 992, 993, 995:
		return true
	case 1099, 1433, 1434, 1521, 1719, 1720, 1723, // RMI, SQL Server, Oracle, H.323, PPTP
		2049, 2181, 2375, 2376, 2377, 2379, 2380, // NFS, ZooKeeper, Docker, etcd
		3306, 3389, 3659, 4045, 4190, 4369, // MySQL, RDP, lockd, ManageSieve, epmd
		5060, 5061, 5432, 5433, 5671, 5672, 5900, 5901, 5984, 5985, 5986, // SIP, PostgreSQL, AMQP, VNC, CouchDB, WinRM
		6000, 6379, 6380, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, // X11, Redis, Kubernetes, IRC
		7000, 7001, 7199, 7473, 7474, 7687, // Cassandra, Neo4j
		8086, 8300, 8301, 8302, 8500, 8501, 8502, 8600, // InfluxDB, Consul
		9042, 9092, 9093, 9160, 9200, 9300, // Cassandra, Kafka, Elasticsearch
		10080, 10250, 10255, 10256, 10257, 10259, // kubelet and its neighbours
		11211, 15672, 16379, 25672, 26257, 26379, // memcached, RabbitMQ, CockroachDB, Redis cluster and Sentinel
		27017, 27018, 27019, 28017: // MongoDB; higher ports are given to clients
		return true
	}
	return false
}
