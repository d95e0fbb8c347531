package launch

import (
	"fmt"
	"io"
	"net"
	"strings"
)

// robotName is the robot in words.
func (c *Config) robotName() string {
	name := map[string]string{"fr3": "Franka FR3", "panda": "Franka Panda", "stretch4": "Stretch 4"}[c.Robot.Model]
	if c.Robot.Driver == "twin" {
		name += " (twin)"
	}
	return name
}

// base is the address of the door as a client writes it.
func (c *Config) base(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if unspecified(host) {
		host = "localhost"
		if len(c.Listen.Hosts) > 0 {
			host = hostOnly(c.Listen.Hosts[0])
		}
	}
	scheme := "http"
	if c.Listen.TLS.on() {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func (c *Config) mcpURL(addr string) string { return c.base(addr) + "/mcp" }

// banner prints what a person pastes: addresses, token, and the lines of two agents. token is empty when
// the tokens come from the launch file, which holds only their hashes.
func (c *Config) banner(w io.Writer, addr, token, socket string, cert certificate) error {
	url, page, shown := c.mcpURL(addr), c.base(addr)+"/", token
	if token == "" {
		shown = "YOUR_TOKEN"
	} else {
		page += "?token=" + token
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s is ready: %s, %s face.\n\n", c.Name, c.robotName(), c.Face)
	if c.Page.Enabled {
		fmt.Fprintf(&b, "  page    %s\n", page)
	}
	fmt.Fprintf(&b, "  agents  %s\n  token   %s\n  viactl  --socket %s\n", url, shown, socket)
	if c.Robot.Arm == "operator" {
		fmt.Fprintf(&b, "\nIt is disarmed, and nothing moves until an operator arms it: bin/viactl --socket %s arm\n", socket)
	}
	if cert.finger != "" {
		b.WriteString(c.trustLines(addr, cert))
	}
	fmt.Fprintf(&b, "\nClaude Code:\n\n  claude mcp add --transport http viad %s --header \"Authorization: Bearer %s\"\n", url, shown)
	fmt.Fprintf(&b, "\nCodex, in ~/.codex/config.toml:\n\n%s\n", codexLines(url, shown))
	_, err := io.WriteString(w, b.String())
	return err
}

// latchedLine tells who starts a daemon that comes up latched, last, so that it is not scrolled away.
func latchedLine(w io.Writer, why, socket string) error {
	if why == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nIt is LATCHED: %s.\nNothing moves until an operator has looked at the robot, and then:\n\n  bin/viactl --socket %s clear\n  bin/viactl --socket %s arm\n", why, socket, socket)
	return err
}

// trustLines say how a client comes to know a certificate that was made here. Agents that do not know it run
// without the robot's tools, and hardly say so.
func (c *Config) trustLines(addr string, cert certificate) string {
	lines := fmt.Sprintf("\nTLS with the certificate %s, SHA-256 fingerprint\n\n  %s\n", cert.path, cert.finger)
	if !cert.own {
		return lines
	}
	at := strings.TrimPrefix(c.base(addr), "https://")
	return lines + fmt.Sprintf(`
It was made here, so every client must be given it, or the agent runs without the robot's tools. Where the agent
runs, fetch it, compare the fingerprint with the one above, and name it to the agent:

  openssl s_client -connect %s </dev/null 2>/dev/null | openssl x509 -out viad.pem
  openssl x509 -in viad.pem -noout -fingerprint -sha256
  export NODE_EXTRA_CA_CERTS=$PWD/viad.pem     # Claude Code, and whatever else runs on Node
  export CODEX_CA_CERTIFICATE=$PWD/viad.pem    # Codex
`, at)
}

// codexLines is a table of Codex's config. By default it asks a person before a destructive tool and, where
// there is nobody to ask, refuses the call: hence the approval mode. A call takes up to 40 s.
func codexLines(url, token string) string {
	return fmt.Sprintf(`  [mcp_servers.viad]
  url = %q
  http_headers = { Authorization = "Bearer %s" }
  tool_timeout_sec = 60
  default_tools_approval_mode = "approve"`, url, token)
}
