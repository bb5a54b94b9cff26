"""Made-up secrets of each kind, to be planted; the part that must not be seen is `CORE`, or begins
with it."""

CORE = "qW8e" + "Zt5x" * 5
"""24 characters; put together here, so that no scanner takes it for a real one."""
SEPARATED = f"{CORE[:8]}-{CORE[:4]}_{CORE[-8:]}"
_DIGITS = "4815162342"

TOKENS = {
    name: f"{prefix}{CORE}"
    for name, prefix in {
        "Hugging Face": "hf_", "OpenAI": "sk-", "OpenAI project": "sk-proj-",
        "Anthropic": "sk-ant-api03-", "Stripe": "sk_live_", "Stripe restricted": "rk_live_",
        "GitHub": "ghp_", "GitHub server": "ghs_", "GitHub refresh": "ghr_",
        "GitHub fine": "github_pat_", "GitLab": "glpat-", "Grafana": "glsa_", "Slack": "xoxb-",
        "Slack app": "xapp-", "npm": "npm_", "PyPI": "pypi-AgEI", "Docker": "dckr_pat_",
        "DigitalOcean": "dop_v1_", "Shopify": "shpat_", "Linear": "lin_api_", "NVIDIA": "nvapi-",
        "Replicate": "r8_", "Groq": "gsk_", "Perplexity": "pplx-", "xAI": "xai-",
        "Tavily": "tvly-", "LangSmith": "lsv2_pt_", "W&B": "wandb_v1_", "Atlassian": "ATATT3x",
        "Grafana Cloud": "glc_", "Google client": "GOCSPX-", "Sentry": "sntrys_",
        "Tailscale": "tskey-auth-", "Notion": "ntn_", "Pinecone": "pcsk_", "Fly": "fo1_",
        "Together": "tgp_v1_", "Typeform": "tfp_", "a service of tomorrow": "tomorrow_v2_live_",
        "no prefix": "", "Square": "EAAA", "EasyPost": "EZAK", "JFrog": "AKCp",
        "DigitalOcean OAuth": "doo_v1_", "Vault batch": "hvb.",
        "webhook": "whsec_", "RubyGems": "rubygems_", "age": "AGE-SECRET-KEY-1",
        "Google": "AIza", "Google OAuth": "ya29.", "Vault": "hvs.",
        "SendGrid": "SG.abcdefghijklmnop1.", "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0x.",
        "Slack webhook": "https://hooks.slack.com/services/T0/B0/",
        "Discord webhook": "https://discord.com/api/webhooks/1/",
    }.items()
} | {
    f"{name} with separators": f"{prefix}{SEPARATED}"
    for name, prefix in {
        "NVIDIA": "nvapi-", "Figma": "figd_", "W&B": "wandb_v1_", "Tailscale": "tskey-auth-",
        "Atlassian": "ATATT3x", "Google": "AIza", "Google OAuth": "ya29.", "Vault": "hvs.",
        "SendGrid": "SG.abcd-fghijklmnop1.", "Grafana Cloud": "glc_", "Notion": "ntn_",
    }.items()
} | {
    "AWS": "AKIA" + CORE.upper()[:16],
    "AWS session": "ASIA" + CORE.upper()[:16],
    "Telegram": f"{_DIGITS}:{CORE}{CORE[:11]}",
}  # fmt: skip
"""Secrets that are known by their look, wherever they stand."""

SHAPED = ("no prefix", "a service of tomorrow")
"""Those that have the shape of a token and no known prefix: names of folders have that shape too,
so pages hide them, and a configuration takes them."""

ASSIGNED = {
    "variable": f"export WANDB_API_KEY={CORE}",
    "password variable": f"PGPASSWORD={CORE} psql",
    "option": f"--token {CORE}",
    "option with =": f"--hf-token={CORE}",
    "argument list": f'["--token", "{CORE}"]',
    "Python argument list": f"['--api-key', '{CORE}']",
    "JSON": f'{{"api_key": "{CORE}", "a": 1}}',
    "JSON in JSON": f'"{{\\"password\\": \\"{CORE}\\"}}"',
    "camel case": f"accessToken: {CORE}",
    "YAML": f"password: {CORE}\n",
    "YAML block": f"secret: |\n  {CORE}\n  {CORE}\nother: 1",
    "quoted with blanks": f'PASSWORD="two words {CORE}"',
    "dict": f"{{'client_secret': '{CORE}'}}",
    "Bearer": f"Authorization: Bearer {CORE}",
    "Bearer alone": f"curl -H 'x: Bearer {CORE}'",
    "Basic": f"Authorization: Basic {CORE}==",
    "Basic alone": f"sent Basic {CORE}==",
    "X-Api-Key": f"-H 'X-Api-Key: {CORE}'",
    "cookie": f"Cookie: session={CORE}",
    "netrc": f"machine api.wandb.ai login user password {CORE}",
    "netrc in lines": f"machine a.b\n  login user\n  password {CORE}\n",
    "curl's user": f"curl -u me:{CORE} https://example.org",
    "user and password in a URL": f"https://me:{CORE}@example.org/x",
    "token in a URL": f"git clone https://{CORE}@github.com/a/b",
    "password alone in a URL": f"redis://:{CORE}@cache:6379/0",
    "database": f"postgresql+psycopg://me:{CORE}/x@db/name",
    "query": f"https://example.org/x?a=1&token={CORE}&b=2",
    "signed URL of S3": f"https://b.s3.amazonaws.com/k?X-Amz-Expires=9&X-Amz-Signature={CORE}",
    "signed URL of GCS": f"https://storage.googleapis.com/b/k?X-Goog-Signature={CORE}",
    "signed URL of Azure": f"https://a.blob.core.windows.net/c/k?sv=2024&sig={CORE}%3D",
    "Azure": f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={CORE}==;Endpoint=x",
    "PEM": f"-----BEGIN RSA PRIVATE KEY-----\n{CORE}\n-----END RSA PRIVATE KEY-----",
    "OpenSSH": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CORE}\n{CORE}",
    "PEM in JSON": f'{{"private_key": "-----BEGIN PRIVATE KEY-----\\n{CORE}\\n"}}',
    "Hydra": f"+logger.api_key={CORE}",
    "passphrase": f"passphrase = '{CORE}'",
}
"""Secrets that are known by what stands before them."""

KINDS = {name: f"before {secret} after" for name, secret in TOKENS.items()} | ASSIGNED


def seen(text):
    """Which secrets are in the text, or a part of one of 8 characters."""
    return [part for part in (CORE[:8], CORE[-8:], CORE[:8].upper()) if part in text]
