"""TLS of listeners and of connections between brokers."""

from headrace.settings.definitions.checks import Entries, OneOf
from headrace.settings.definitions.setting import PER_BROKER, refused
from headrace.settings.definitions.value_type import BOOLEAN, CLASS, LIST, PASSWORD, STRING

# fmt: off
SETTINGS = (
    refused("ssl.allow.dn.changes", BOOLEAN, False,
            "Let a new certificate have another distinguished name."),
    refused("ssl.allow.san.changes", BOOLEAN, False,
            "Let a new certificate have other alternative names."),
    refused("ssl.cipher.suites", LIST, (),
            "Cipher suites that are allowed; empty means the library's choice.", Entries(empty=True), PER_BROKER),
    refused("ssl.client.auth", STRING, "none",
            "Whether clients must show a certificate: required, requested or none.", OneOf("required", "requested", "none"), PER_BROKER),
    refused("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"),
            "TLS versions that are allowed.", Entries(empty=True), PER_BROKER),
    refused("ssl.endpoint.identification.algorithm", STRING, "https",
            "How the name of a server is checked against its certificate; empty switches it off.", update=PER_BROKER),
    refused("ssl.engine.factory.class", CLASS, None,
            "Java class that makes TLS engines.", update=PER_BROKER),
    refused("ssl.key.password", PASSWORD, None, "Password of the private key.", update=PER_BROKER),
    refused("ssl.keymanager.algorithm", STRING, "SunX509",
            "Key manager algorithm of Java.", update=PER_BROKER),
    refused("ssl.keystore.certificate.chain", PASSWORD, None,
            "Certificate chain as PEM text.", update=PER_BROKER),
    refused("ssl.keystore.key", PASSWORD, None, "Private key as PEM text.", update=PER_BROKER),
    refused("ssl.keystore.location", STRING, None,
            "File with key and certificate.", update=PER_BROKER),
    refused("ssl.keystore.password", PASSWORD, None, "Password of that file.", update=PER_BROKER),
    refused("ssl.keystore.type", STRING, "JKS", "Format of that file.", update=PER_BROKER),
    refused("ssl.principal.mapping.rules", STRING, "DEFAULT",
            "Rules that make a user name from a certificate's distinguished name."),
    refused("ssl.protocol", STRING, "TLSv1.3", "TLS version to begin with.", update=PER_BROKER),
    refused("ssl.provider", STRING, None, "Java security provider for TLS.", update=PER_BROKER),
    refused("ssl.secure.random.implementation", STRING, None,
            "Random number generator of Java for TLS.", update=PER_BROKER),
    refused("ssl.trustmanager.algorithm", STRING, "PKIX",
            "Trust manager algorithm of Java.", update=PER_BROKER),
    refused("ssl.truststore.certificates", PASSWORD, None,
            "Trusted certificates as PEM text.", update=PER_BROKER),
    refused("ssl.truststore.location", STRING, None,
            "File with trusted certificates.", update=PER_BROKER),
    refused("ssl.truststore.password", PASSWORD, None,
            "Password of that file.", update=PER_BROKER),
    refused("ssl.truststore.type", STRING, "JKS", "Format of that file.", update=PER_BROKER),
)
# fmt: on
