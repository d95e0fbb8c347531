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
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
		if len(c.Listen.Hosts) > 0 {
			host = c.Listen.Hosts[0]
		}
	}
	scheme := "http"
	if c.Listen.TLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func (c *Config) mcpURL(addr string) string { return c.base(addr) + "/mcp" }

// banner prints what a person pastes: addresses, token, and the lines of two agents. token is empty when
// the tokens come from the launch file, which holds only their hashes.
func (c *Config) banner(w io.Writer, addr, token, socket string) error {
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
	fmt.Fprintf(&b, "\nClaude Code:\n\n  claude mcp add --transport http viad %s --header \"Authorization: Bearer %s\"\n", url, shown)
	fmt.Fprintf(&b, "\nCodex, in ~/.codex/config.toml:\n\n%s\n", codexLines(url, shown))
	_, err := io.WriteString(w, b.String())
	return err
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
