"""What looks like a secret or an address and is none: examples of documentation, placeholders, names in code."""

import math
import re
from collections import Counter

from judging.shell.words import word_set

# A value that is about to be filled in.
_PLACEHOLDER = re.compile(
    r"EXAMPLE|example|x{4}|X{4}|\*{3}|\.{3}|…|[Yy]our[-_ A-Z]|YOUR|[Rr]edacted|REDACTED|[Pp]laceholder|[Cc]hange_?me"
    r"|CHANGE_?ME|[Dd]ummy|DUMMY|^<|>$|^\$|\$\{|\{\{|%[sd(]|\[REDACTED|(.)\1{9}"
)
# Keys that vendors print in their documentation.
_PUBLISHED = ("sk_test_4eC39HqLyjWDarjtT1zdp7dc", "sk_test_BQokikJOvBiI2HlWgH4olfQ2", "eyJzdWIiOiIxMjM0NTY3ODkwIi")
_TRIVIAL = word_set(
    """
    password passwd pass pw pwd secret token apikey key test testing admin root user guest postgres mysql redis
    rabbit rabbitmq minio minioadmin mongo default none null true false undefined empty string str bytes text
    optional required hidden masked unknown foo bar baz foobar qwerty letmein password123 pass123 test123 secret123
    """
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_]*(?:[.\-/:][A-Za-z_]+)*\d{0,2}")
_SAMPLE_DOMAINS = word_set(
    """
    example domain yourdomain your-domain mydomain company yourcompany your-company foo bar baz test acme host
    hostname server localhost xxx yourhost yoursite mysite
    """
)
_RESERVED_TLDS = word_set(
    """
    example test invalid localhost local localdomain internal lan
    """
)
_NO_PERSON = word_set(
    """
    noreply no-reply no_reply donotreply do-not-reply do_not_reply git hg svn root ubuntu ec2-user debian centos
    admin www-data postgres user username you your.name yourname your-name youremail your.email your-email me name
    email someone nobody null mailer-daemon postmaster hostmaster foo bar test tester
    """
)
# Generic top-level domains besides those of countries, which have two letters.
_TLDS = word_set(
    """
    com org net edu gov mil int info biz dev app cloud online tech email xyz name pro museum mobi jobs travel cat
    asia site store blog shop agency company solutions systems network digital studio design world life live today
    group work team zone science software academy institute university health law bank london berlin paris nyc tokyo
    space website page wiki news media global consulting services support engineering expert technology ventures
    capital finance energy eco club social chat codes computer community education foundation center care clinic
    """
)
_NO_USER = word_set(
    """
    user users username ubuntu runner runneradmin vscode node app appuser agent dev developer docker ec2-user admin
    root me you vagrant pi git test tester testuser test-user circleci travis jenkins gitpod codespace codespaces
    sandbox linuxbrew nobody www-data shared public guest default name yourname your_name your-name your-username
    yourusername your_username youruser jovyan worker builder build ci deploy service svc container coder workspace
    project projects myuser someuser user1 user2 foo bar baz example centos debian fedora oracle postgres mysql
    redis swe-agent openhands devbox lib bin opt tmp etc
    """
)


def is_placeholder(value: str) -> bool:
    """Return whether a value is an example, or stands for a value that is filled in later."""
    return _PLACEHOLDER.search(value) is not None or any(known in value for known in _PUBLISHED)


def is_trivial_password(value: str) -> bool:
    """Return whether a password is no secret: a word that every documentation uses, or a variable's name."""
    return value.lower().strip("_-") in _TRIVIAL or is_placeholder(value) or len(set(value)) < 4


def is_random(value: str) -> bool:
    """Return whether a value of 16 or more characters is random enough for a key: letters and digits, at least 3 bits
    a character (hexadecimal) or 3.5, and neither a name in code nor a UUID."""
    if len(value) < 16 or is_placeholder(value) or _UUID.fullmatch(value) or _NAME.fullmatch(value):
        return False
    if not (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return False
    return entropy(value) >= (3.0 if all(c in "0123456789abcdefABCDEF" for c in value) else 3.5)


def entropy(value: str) -> float:
    """Return Shannon's entropy of the characters, in bits a character."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def is_sample_address(local: str, domain: str) -> bool:
    """Return whether an e-mail address belongs to no person: a reserved or sample domain, or a sender without a reader.
    An unknown ending is a name in code, such as `a@b.shape`."""
    labels = domain.lower().split(".")
    ending = labels[-1]
    if ending in _RESERVED_TLDS or not (len(ending) == 2 or ending in _TLDS):
        return True
    if any(label in _SAMPLE_DOMAINS for label in labels[-2:]) or any("noreply" in label for label in labels):
        return True
    name = local.lower().partition("+")[0]
    return name in _NO_PERSON or name.startswith(("noreply", "no-reply")) or "noreply" in name


def is_service_user(name: str) -> bool:
    """Return whether a home folder belongs to no person: an account of an image, of a CI service or of an example."""
    return name.lower() in _NO_USER or is_placeholder(name)
